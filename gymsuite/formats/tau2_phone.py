"""tau2's telecom domain, the user's side: using the phone, and what sets tasks up."""

from typing import Literal

from gymsuite.formats.tau2_domain import Desk, Side
from gymsuite.formats.tau2_phone_state import (
    APN,
    PREFERRED,
    around,
    change,
    data_works,
    permit,
    phone_of,
    rights_of,
    search_network,
    sends_mms,
    sim_status,
    speed,
    status_bar,
    toggle,
)
from gymsuite.tools import ToolError

Mode = Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"]


def check_status_bar(desk: Desk) -> object:
    """Show the phone's status bar."""
    return status_bar(desk)


def check_network_status(desk: Desk) -> object:
    """Show how the phone is connected."""
    phone = phone_of(desk)
    names = (
        "airplane_mode", "network_connection_status", "network_signal_strength",
        "network_technology_connected", "data_enabled", "roaming_enabled", "wifi_enabled",
        "wifi_connected",
    )  # fmt: skip
    return {"sim_card": sim_status(desk), **{name: phone[name] for name in names}}


def check_network_mode_preference(desk: Desk) -> object:
    """Show which kinds of network the phone uses."""
    return phone_of(desk)["network_mode_preference"]


def set_network_mode_preference(desk: Desk, mode: Mode) -> object:
    """Choose which kinds of network the phone uses."""
    if mode not in PREFERRED:
        raise ToolError(f"no mode {mode!r}; there are: {', '.join(PREFERRED)}")
    return change(desk, network_mode_preference=mode)


def run_speed_test(desk: Desk) -> object:
    """Measure the speed of mobile data."""
    mbps, word = speed(desk)
    return {"mbps": mbps, "speed": word}


def toggle_airplane_mode(desk: Desk) -> object:
    """Turn airplane mode on or off."""
    phone = phone_of(desk)
    off = {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}
    if not phone["airplane_mode"]:
        off |= {"vpn_connected": False, "vpn_details": None}
    return change(desk, airplane_mode=not phone["airplane_mode"], **off)


def check_sim_status(desk: Desk) -> object:
    """Show whether the SIM card is there and unlocked."""
    return sim_status(desk)


def reseat_sim_card(desk: Desk) -> object:
    """Take the SIM card out and put it in again."""
    return change(desk, sim_card_missing=False)


def toggle_data(desk: Desk) -> object:
    """Turn mobile data on or off."""
    return toggle(desk, "data_enabled")


def toggle_roaming(desk: Desk) -> object:
    """Turn data roaming on or off."""
    return toggle(desk, "roaming_enabled")


def check_data_restriction_status(desk: Desk) -> object:
    """Show whether data saver mode is on."""
    return {"data_saver_mode": phone_of(desk)["data_saver_mode"]}


def toggle_data_saver_mode(desk: Desk) -> object:
    """Turn data saver mode on or off."""
    return toggle(desk, "data_saver_mode", search=False)


def check_apn_settings(desk: Desk) -> object:
    """Show the access point settings."""
    return phone_of(desk)["active_apn_settings"]


def set_apn_settings(desk: Desk, apn_settings: dict[str, str | int | bool | None]) -> object:
    """Replace the access point settings."""
    if unknown := apn_settings.keys() - APN.keys():
        raise ToolError(f"no setting {min(unknown)!r}; there are: {', '.join(APN)}")
    return change(desk, active_apn_settings={**APN, **apn_settings})


def reset_apn_settings(desk: Desk) -> object:
    """Have the access point settings reset at the next reboot."""
    phone_of(desk)["active_apn_settings"]["reset_at_reboot"] = True
    search_network(desk)
    return "the settings are reset at the next reboot"


def check_wifi_status(desk: Desk) -> object:
    """Show whether Wi-Fi is on and connected."""
    phone = phone_of(desk)
    names = ("wifi_enabled", "wifi_connected", "wifi_ssid", "wifi_signal_strength")
    return {name: phone[name] for name in names}


def toggle_wifi(desk: Desk) -> object:
    """Turn Wi-Fi on or off."""
    phone = phone_of(desk)
    if phone["airplane_mode"]:
        raise ToolError("Wi-Fi cannot be changed in airplane mode")
    phone["wifi_enabled"] = not phone["wifi_enabled"]
    if not phone["wifi_enabled"]:
        phone |= {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}
    return {"wifi_enabled": phone["wifi_enabled"], "status_bar": status_bar(desk)}


def check_wifi_calling_status(desk: Desk) -> object:
    """Show whether calls go over Wi-Fi."""
    return {"wifi_calling_enabled": phone_of(desk)["wifi_calling_enabled"]}


def toggle_wifi_calling(desk: Desk) -> object:
    """Turn calls over Wi-Fi on or off."""
    return toggle(desk, "wifi_calling_enabled", search=False)


def check_vpn_status(desk: Desk) -> object:
    """Show whether a VPN is connected."""
    phone = phone_of(desk)
    return {name: phone[name] for name in ("vpn_enabled_setting", "vpn_connected", "vpn_details")}


def connect_vpn(desk: Desk) -> object:
    """Connect to the VPN."""
    phone = phone_of(desk)
    if phone["vpn_connected"]:
        return "the VPN is connected already"
    details = {"server_address": "192.168.1.1", "protocol": "OpenVPN"}
    details["server_performance"] = "excellent"
    phone |= {"vpn_connected": True, "vpn_details": details}
    return {"vpn_connected": True, "status_bar": status_bar(desk)}


def disconnect_vpn(desk: Desk) -> object:
    """Disconnect from the VPN."""
    phone_of(desk).update(vpn_connected=False, vpn_details=None)
    return {"vpn_connected": False, "status_bar": status_bar(desk)}


def check_installed_apps(desk: Desk) -> object:
    """Show the apps on the phone."""
    return list(phone_of(desk)["app_statuses"])


def check_app_status(desk: Desk, app_name: str) -> object:
    """Show an app with its permissions."""
    return {"app_name": app_name, "permissions": rights_of(desk, app_name)}


def check_app_permissions(desk: Desk, app_name: str) -> object:
    """Show the permissions of an app."""
    return rights_of(desk, app_name)


def grant_app_permission(desk: Desk, app_name: str, permission: str) -> object:
    """Grant an app a permission, such as "sms" or "storage"."""
    return permit(desk, app_name, permission, granted=True)


def can_send_mms(desk: Desk) -> object:
    """Try whether a picture message goes out."""
    return {"can_send_mms": sends_mms(desk)}


def reboot_device(desk: Desk) -> object:
    """Turn the phone off and on again."""
    phone = phone_of(desk)
    if phone["active_apn_settings"]["reset_at_reboot"]:
        phone["active_apn_settings"] = dict(APN)
    search_network(desk)
    return {"status_bar": status_bar(desk)}


def check_payment_request(desk: Desk) -> object:
    """Show whether there is a bill to pay."""
    return around(desk)["payment_request"] or "no payment is asked for"


def make_payment(desk: Desk) -> object:
    """Pay the bill that is asked for."""
    request = around(desk)["payment_request"]
    if request is None:
        raise ToolError("no payment is asked for")
    request["paid"] = True
    return f"paid {request['amount_due']} USD for bill {request['bill_id']}"


def _set_user_info(desk: Desk, name: str, phone_number: str) -> object:
    around(desk).update(name=name, phone_number=phone_number)
    return "set"


def _set_user_location(desk: Desk, *, abroad: bool) -> object:
    around(desk)["is_abroad"] = abroad
    return "set"


def _turn_airplane_mode_on(desk: Desk) -> object:
    return None if phone_of(desk)["airplane_mode"] else toggle_airplane_mode(desk)


def _turn_airplane_mode_off(desk: Desk) -> object:
    return toggle_airplane_mode(desk) if phone_of(desk)["airplane_mode"] else None


def _turn_data_on(desk: Desk) -> object:
    phone_of(desk)["data_enabled"] = True
    return "on"


def _turn_data_off(desk: Desk) -> object:
    return change(desk, data_enabled=False)


def _turn_roaming_on(desk: Desk) -> object:
    return change(desk, roaming_enabled=True)


def _turn_roaming_off(desk: Desk) -> object:
    return change(desk, roaming_enabled=False)


def _turn_data_saver_mode_on(desk: Desk) -> object:
    phone_of(desk)["data_saver_mode"] = True
    return "on"


def _turn_data_saver_mode_off(desk: Desk) -> object:
    phone_of(desk)["data_saver_mode"] = False
    return "off"


def _unseat_sim_card(desk: Desk) -> object:
    return change(desk, sim_card_missing=True)


def _lock_sim_card(desk: Desk, mode: str) -> object:
    return change(desk, sim_card_status=f"locked_{mode}")


def _break_apn_settings(desk: Desk) -> object:
    phone_of(desk)["active_apn_settings"]["apn_name"] = "broken"
    return search_network(desk)


def _break_apn_mms_setting(desk: Desk) -> object:
    phone_of(desk)["active_apn_settings"]["mmsc_url"] = None
    return "broken"


def _set_wifi_calling(desk: Desk, *, enabled: bool, mms_over_wifi: bool | None = None) -> object:
    phone_of(desk)["wifi_calling_enabled"] = enabled
    if mms_over_wifi is not None:
        phone_of(desk)["wifi_calling_mms_over_wifi"] = mms_over_wifi
    return "set"


def _break_vpn(desk: Desk) -> object:
    connect_vpn(desk)
    phone_of(desk)["vpn_details"]["server_performance"] = "poor"
    return "broken"


def _remove_app_permission(desk: Desk, app_name: str, permission: str) -> object:
    return permit(desk, app_name, permission, granted=False)


def _assert_airplane_mode_status(desk: Desk, *, expected_status: bool) -> bool:
    return bool(phone_of(desk)["airplane_mode"] == expected_status)


def _assert_service_status(desk: Desk, expected_status: str) -> bool:
    return bool(phone_of(desk)["network_connection_status"] == expected_status)


def _assert_mobile_data_status(desk: Desk, *, expected_status: bool) -> bool:
    return data_works(desk) == expected_status


def _assert_mobile_roaming_status(desk: Desk, *, expected_status: bool) -> bool:
    return bool(phone_of(desk)["roaming_enabled"] == expected_status)


def _assert_mobile_data_saver_mode_status(desk: Desk, *, expected_status: bool) -> bool:
    return bool(phone_of(desk)["data_saver_mode"] == expected_status)


def _assert_internet_speed(
    desk: Desk, expected_speed: float, expected_desc: str | None = None
) -> bool:
    mbps, word = speed(desk)
    return mbps >= expected_speed and expected_desc in (None, word)


def _assert_internet_not_excellent(desk: Desk) -> bool:
    return speed(desk)[1] != "excellent"


def _assert_can_send_mms(desk: Desk, *, expected_status: bool) -> bool:
    return sends_mms(desk) == expected_status


def _assert_mobile_data_usage_exceeded(desk: Desk, *, expected_status: bool) -> bool:
    return bool(around(desk)["mobile_data_usage_exceeded"] == expected_status)


SIDE = Side(
    (
        check_status_bar, check_network_status, check_network_mode_preference,
        set_network_mode_preference, run_speed_test, toggle_airplane_mode, check_sim_status,
        reseat_sim_card, toggle_data, toggle_roaming, check_data_restriction_status,
        toggle_data_saver_mode, check_apn_settings, set_apn_settings, reset_apn_settings,
        check_wifi_status, toggle_wifi, check_wifi_calling_status, toggle_wifi_calling,
        check_vpn_status, connect_vpn, disconnect_vpn, check_installed_apps, check_app_status,
        check_app_permissions, grant_app_permission, can_send_mms, reboot_device,
        check_payment_request, make_payment,
    ),
    {
        "set_user_info": _set_user_info,
        "set_user_location": _set_user_location,
        "turn_airplane_mode_on": _turn_airplane_mode_on,
        "turn_airplane_mode_off": _turn_airplane_mode_off,
        "turn_data_on": _turn_data_on,
        "turn_data_off": _turn_data_off,
        "turn_roaming_on": _turn_roaming_on,
        "turn_roaming_off": _turn_roaming_off,
        "turn_data_saver_mode_on": _turn_data_saver_mode_on,
        "turn_data_saver_mode_off": _turn_data_saver_mode_off,
        "unseat_sim_card": _unseat_sim_card,
        "lock_sim_card": _lock_sim_card,
        "break_apn_settings": _break_apn_settings,
        "break_apn_mms_setting": _break_apn_mms_setting,
        "set_wifi_calling": _set_wifi_calling,
        "break_vpn": _break_vpn,
        "remove_app_permission": _remove_app_permission,
        "simulate_network_search": search_network,
        "assert_airplane_mode_status": _assert_airplane_mode_status,
        "assert_service_status": _assert_service_status,
        "assert_mobile_data_status": _assert_mobile_data_status,
        "assert_mobile_roaming_status": _assert_mobile_roaming_status,
        "assert_mobile_data_saver_mode_status": _assert_mobile_data_saver_mode_status,
        "assert_internet_speed": _assert_internet_speed,
        "assert_internet_not_excellent": _assert_internet_not_excellent,
        "assert_can_send_mms": _assert_can_send_mms,
        "assert_mobile_data_usage_exceeded": _assert_mobile_data_usage_exceeded,
    },
)  # fmt: skip
